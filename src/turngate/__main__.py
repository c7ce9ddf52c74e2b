"""`python -m turngate` is `turngate`."""

import sys

from turngate.cli.app import main

sys.exit(main())
