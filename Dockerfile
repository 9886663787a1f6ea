# layoutproof with a C compiler and the other solvers, for checks that have to be alike everywhere:
#
#     docker build --tag layoutproof .
#     docker run --rm --volume "$PWD:/work:ro" layoutproof check gates.py
FROM python:3.12-slim

RUN apt-get update \
    && apt-get install --yes --no-install-recommends gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*

COPY . /source
RUN python -m pip install --no-cache-dir "/source[recheck,onnx]" && rm -rf /source

# Checking runs the code of gates, so not as root; the caches are this user's own.
RUN useradd --create-home checker && mkdir --mode 700 /home/checker/.cache && chown checker /home/checker/.cache
USER checker
WORKDIR /work
ENTRYPOINT ["layoutproof"]
CMD ["--help"]
