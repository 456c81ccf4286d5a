# Two images:
#
#   docker build --target lab .   loadtest with a shop, Redis and MariaDB: the whole lab in one container
#   docker build .                /shop as it is deployed: nothing of the lab
# Go compiles for another platform by itself; only the lab's packages of Debian are installed under emulation there.
FROM --platform=$BUILDPLATFORM golang:1.26-bookworm AS source
WORKDIR /src
# In a layer of their own, the modules are fetched again only when they change.
COPY go.mod go.sum ./
RUN go mod download
COPY . .

FROM source AS build-lab
ARG TARGETOS TARGETARCH
RUN --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH scripts/lab-go.sh build -trimpath -ldflags=-s -o /out/ ./cmd/shop ./cmd/loadtest

FROM source AS build-shop
ARG TARGETOS TARGETARCH
RUN --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -tags nomsgpack -trimpath -ldflags=-s -o /out/ ./cmd/shop

FROM debian:bookworm-slim AS lab
# A volume mounted at /trace gets the owner of this folder: shops of their own write there.
RUN apt-get update -qq \
    && apt-get install -y -qq --no-install-recommends redis-server mariadb-server \
    && rm -rf /var/lib/apt/lists/* /var/lib/mysql \
    && useradd --system --uid 65532 --no-create-home lab \
    && install -d -o lab -g lab /trace
COPY --from=build-lab /out/ /usr/local/bin/
COPY deploy/lab.sh /usr/local/bin/lab
WORKDIR /
ENTRYPOINT ["lab"]

FROM gcr.io/distroless/static-debian12:nonroot AS shop
COPY --from=build-shop /out/ /
EXPOSE 8080
# Reachable with docker run -p; a shop in the lab refuses this address unless it is allowed to others.
ENV SHOP_ADDR=:8080
HEALTHCHECK --interval=10s --timeout=5s CMD ["/shop", "healthcheck", "--live"]
ENTRYPOINT ["/shop"]
