# For those who have a Docker daemon; `make image` makes the same image without one.
#   docker build --tag memcached-operator:dev .
#   docker buildx build --platform linux/amd64,linux/arm64 --tag <registry>/memcached-operator:<tag> --push .
ARG RUST=1.95.0
FROM rust:${RUST}-alpine AS build
# A C compiler and headers for the cryptography.
RUN apk add --no-cache build-base
WORKDIR /src
COPY . .
# Alpine's Rust links statically against musl by default.
RUN cargo build --locked --release \
      --package memcached-operator --package memcached-agent --bin memcached-operator --bin memcached-agent \
 && mkdir /out \
 && cp target/release/memcached-operator target/release/memcached-agent /out/

FROM scratch
ARG VERSION=dev
ARG REVISION=unknown
ARG SOURCE=
LABEL org.opencontainers.image.title="memcached-operator" \
      org.opencontainers.image.description="Runs the caches that people declare as Memcached objects, and keeps them warm" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.source="${SOURCE}"
COPY --from=build /out/ /
USER 65532
ENTRYPOINT ["/memcached-operator"]
