# The default method behind HTTP, without PyTorch.
#
#     docker build -t transpl .
#     docker run --rm -p 127.0.0.1:8000:8000 -v "$PWD/results:/model:ro" transpl
FROM python:3.12-slim

WORKDIR /build
COPY pyproject.toml README.md LICENSE constraints.txt ./
COPY src ./src
RUN pip install --no-cache-dir --constraint constraints.txt '.[serve]' && rm -rf /build

RUN useradd --create-home --uid 10001 transpl
USER transpl
WORKDIR /home/transpl

EXPOSE 8000
HEALTHCHECK CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/health', timeout=3)"]
CMD ["transpl", "serve", "/model", "--host", "0.0.0.0", "--port", "8000"]
