# One image with both programs: /shop, which is what it runs, and /loadtest.
FROM golang:1.26-bookworm AS build
WORKDIR /src
# In a layer of their own, the modules are fetched again only when they change.
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 go build -tags lab -trimpath -ldflags=-s -o /out/ ./cmd/shop ./cmd/loadtest

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /out/ /
EXPOSE 8080
ENTRYPOINT ["/shop"]
