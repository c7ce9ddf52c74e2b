"""One request to a model and its reply: sent as the engine has it, our own calls answered on the way."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

from aiohttp import ClientError, web

from turngate.errors import StoreError
from turngate.proxy import answers, relay, upstream
from turngate.proxy.chain.ask import Ask, Sending
from turngate.proxy.chain.compacting import fitted
from turngate.proxy.chain.replies import Echo, Reply
from turngate.proxy.errors import stream_error
from turngate.proxy.identity import credential_of, session_of
from turngate.proxy.reply import messages_of_result, stream_reply, whole_reply
from turngate.proxy.upstream import UpstreamFault

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from aiohttp import ClientResponse

    from turngate.proxy.reply.base import OwnCall, Round, StreamReply, WholeReply
    from turngate.proxy.routes import Route
    from turngate.proxy.services import Services
    from turngate.wire import Wire

T = TypeVar("T")

#: Without any of these a request has nothing that the engine would look at: no tools, and no results.
_OURS: Final = (
    b'"tools"',
    b'"tool_result"',
    b'"tool_call_id"',
    b'_output"',
    b'"functionResponse"',
    b'"function_response"',
)
_OK: Final = 200
_MOST_DETAIL_CHARS: Final = 2_000

_log = logging.getLogger("turngate.proxy")


def follows(body: bytes) -> bool:
    """Whether the engine has to look at a request."""
    return any(word in body for word in _OURS)


async def handle(request: web.Request, route: Route, body: bytes, services: Services) -> web.StreamResponse:
    """Answer one request to a model.

    Args:
        request: the client's.
        route: its format, and where it goes.
        body: its body, without its compression.
        services: what requests share.
    """
    sending = await _prepared(request, route, body, services)
    if sending is None or not sending.offered or route.purpose != "generate":
        out = body if sending is None else sending.body
        headers = relay.request_headers(request, decoded=True) + list(sending.headers if sending else ())
        return await relay.forward(request, route, services, out, headers)
    return await _Exchange(request, route, services, sending).run()


async def _prepared(request: web.Request, route: Route, body: bytes, services: Services) -> Sending | None:
    """What to send; None where the engine cannot say: the client's bytes go out."""
    assert route.wire is not None
    wire = route.wire

    def work() -> Sending:
        scope = services.engine.scope(credential_of(request.headers, request.query))
        ask = Ask(body, wire, scope, session_of(request.headers, body, wire))
        sending = services.engine.prepare(ask)
        return fitted(services.gate, sending, services.settings.proxy.window_tokens)

    try:
        sending = await _aside(services, work)
    except StoreError:
        services.metrics.fault("store")
        return None
    except Exception as fault:  # noqa: BLE001 - fail open
        if services.metrics.fault(type(fault).__name__):
            _log.warning(
                "%s in the engine: the request passes as it came", type(fault).__name__, exc_info=True
            )
        return None
    services.metrics.prepared(sending, len(body))
    return sending


async def _aside(services: Services, work: Callable[[], T]) -> T:
    return await asyncio.get_running_loop().run_in_executor(services.executor, work)


async def _write(out: web.StreamResponse, data: bytes) -> None:
    if data:
        await out.write(data)


@dataclass(slots=True)
class _Exchange:
    """A reply in the making. The client sees one; the upstream may produce several rounds."""

    request: web.Request
    route: Route
    services: Services
    sending: Sending
    before: list[bytes] = field(default_factory=list)
    """Messages of the rounds that were answered, with our results."""
    rounds: list[Round] = field(default_factory=list)

    @property
    def _wire(self) -> Wire:
        return self.sending.wire

    async def run(self) -> web.StreamResponse:
        """Send, answer what is asked of us, and relay the rest."""
        try:
            response = await self._send()
        except UpstreamFault as fault:
            return relay.fault_reply(self.route.provider, self.services, fault)
        json_reader = self._listed if self.route.streaming and self._wire == "gemini" else self._whole
        readers = {"text/event-stream": self._stream, "application/json": json_reader}
        reader = readers.get(response.content_type) if response.status == _OK else None
        if reader is None or response.headers.get("Content-Encoding", "identity") != "identity":
            return await self._pass(response)
        self.services.metrics.replied(response.status)
        return await reader(response)

    async def _pass(self, response: ClientResponse) -> web.StreamResponse:
        return await relay.reply(self.request, self.route.provider, self.services, response)

    async def _send(self) -> ClientResponse:
        sending = self.sending
        body = sending.extended(b",".join(self.before)) if self.before else sending.body
        headers = relay.request_headers(self.request, decoded=True, readable=True) + list(sending.headers)
        return await upstream.send(self.services.http, self.request.method, self.route.url, headers, body)

    async def _stream(self, response: ClientResponse) -> web.StreamResponse:
        return await self._streamed(response, stream_reply(self._wire))

    async def _listed(self, response: ClientResponse) -> web.StreamResponse:
        return await self._streamed(response, stream_reply(self._wire, listed=True))

    async def _streamed(self, response: ClientResponse, reply: StreamReply) -> web.StreamResponse:
        headers = relay.response_headers(response, read=True)
        out = web.StreamResponse(status=response.status, reason=response.reason, headers=headers)
        await out.prepare(self.request)
        try:
            await self._rounds(response, reply, out)
            await out.write_eof()
        except ConnectionResetError:
            self.services.metrics.fault("client gone")
        except (ClientError, TimeoutError) as fault:
            relay.break_off(self.request, self.services, fault)
        return out

    async def _rounds(self, response: ClientResponse, reply: StreamReply, out: web.StreamResponse) -> None:
        try:
            while True:
                await self._relay(response, reply, out)
                if not await self._answer(reply.end()):
                    break
                response = await self._again()
                reply.again(hide=self._may_answer)
            await self._keep()
            await _write(out, reply.close())
        except UpstreamFault as fault:
            # A status can no longer be told.
            await _write(out, reply.fault(stream_error(self.route.provider, fault.kind, fault.message)))

    async def _relay(self, response: ClientResponse, reply: StreamReply, out: web.StreamResponse) -> None:
        async with response:
            async for chunk in response.content.iter_any():
                await _write(out, reply.feed(chunk))

    async def _again(self) -> ClientResponse:
        """The upstream's reply to a further round.

        Raises:
            UpstreamFault: it refuses.
        """
        response = await self._send()
        if response.status != _OK:
            async with response:
                detail = (await response.read()).decode("utf-8", "replace")[:_MOST_DETAIL_CHARS]
            raise UpstreamFault("protocol", f"the upstream answered {response.status}: {detail}")
        return response

    async def _whole(self, response: ClientResponse) -> web.StreamResponse:
        reply: WholeReply = whole_reply(self._wire)
        try:
            while True:
                headers = relay.response_headers(response, read=True)
                async with response:
                    body = await response.read()
                if not await self._answer(reply.read(body)):
                    break
                response = await self._send()
                if response.status != _OK:
                    return await self._pass(response)
                reply.again(hide=self._may_answer)
            await self._keep()
        except UpstreamFault as fault:
            return relay.fault_reply(self.route.provider, self.services, fault)
        except (ClientError, TimeoutError):
            message = "the upstream's answer ends before it is complete"
            return relay.error(self.route.provider, self.services, "protocol", message)
        return web.Response(status=_OK, body=reply.body(), headers=headers)

    @property
    def _may_answer(self) -> bool:
        """Whether a call in the next round would be answered; else it goes through to the client."""
        return len(self.rounds) < self.services.settings.proxy.rounds

    async def _answer(self, produced: Round) -> bool:
        """Answer what a round asks of us; whether another one follows."""
        self.rounds.append(produced)
        self.services.metrics.usage(produced.usage)
        if not produced.own or produced.client_calls or not produced.finished:
            return False
        results = await self._results(produced.own)
        self.before.append(produced.messages + b"," + results)
        return True

    async def _results(self, calls: Sequence[OwnCall]) -> bytes:
        gate, sending = self.services.gate, self.sending

        def work() -> list[tuple[OwnCall, str]]:
            return [(call, answers.answer(gate, sending, call.args)) for call in calls]

        found = await _aside(self.services, work)
        self.services.metrics.retrieved(len(found))
        return messages_of_result(self._wire, found)

    async def _keep(self) -> None:
        """Record what the client does not see, before it sees the end."""
        last = self.rounds[-1]
        held = bool(last.own and last.client_calls and last.finished)
        if not self.before and not held:
            return
        reply = Reply(
            before=b",".join(self.before),
            chars=sum(len("".join(each.text.split())) for each in self.rounds[:-1]),
            blocks=sum(each.blocks for each in self.rounds[:-1]),
            total=sum(each.blocks for each in self.rounds),
            call=last.own_call if held else b"",
            index=last.own_index if held else 0,
            results=await self._results(last.own) if held else b"",
        )
        echo = Echo(
            "".join(each.text for each in self.rounds), last.client_calls, last.id, self._after(reply)
        )
        engine, sending = self.services.engine, self.sending
        await _aside(self.services, lambda: engine.replied(sending, reply, echo))

    def _after(self, reply: Reply) -> bytes:
        """What followed the first round: a client that goes on by its id knows nothing of that."""
        first = self.rounds[0].messages
        rest = [reply.before[len(first) + 1 :], self.rounds[-1].messages] if self.before else []
        return b",".join(part for part in (*rest, reply.results) if part)
