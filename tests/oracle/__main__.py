"""`python -m tests.oracle`: the campaign against TVM."""

import sys

from tests.oracle.campaign import main

if __name__ == "__main__":
    sys.exit(main())
