# The image holds one static binary and certificates, and runs as nobody in particular (65532).
#
#   docker build -t tailwater .

FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=unknown
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /out/usr/bin/tailwater ./cmd/tailwater
RUN mkdir -p /out/var/lib/tailwater /out/etc/tailwater /out/etc/ssl/certs /out/tmp \
 && cp /etc/ssl/certs/ca-certificates.crt /out/etc/ssl/certs/ \
 && chmod 0700 /out/var/lib/tailwater && chmod 1777 /out/tmp \
 && chown -R 65532:65532 /out/var/lib/tailwater

FROM scratch
COPY --from=build /out/ /
USER 65532:65532
# The data directory: keep it on a volume.
VOLUME /var/lib/tailwater
EXPOSE 7171
ENTRYPOINT ["/usr/bin/tailwater"]
CMD ["run", "-c", "/etc/tailwater/tailwater.yaml"]
