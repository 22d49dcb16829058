# The package that `npm pack` makes, and what it needs to run. Build: docker build -t intentwatch .
FROM node:26.10.0-trixie-slim AS package

WORKDIR /clone
COPY package.json package-lock.json ./
RUN npm ci --include=dev --no-audit --no-fund
COPY . ./
RUN npm pack --pack-destination /tmp
# The package, with its dependencies in exactly the versions that were tested.
WORKDIR /opt/intentwatch
RUN tar -xzf /tmp/intentwatch-*.tgz --strip-components=1 \
 && cp /clone/package-lock.json . \
 && npm ci --omit=dev --no-audit --no-fund \
 && chmod 755 bin/intentwatch.mjs

FROM node:26.10.0-trixie-slim

ARG VERSION=0.1.0
LABEL org.opencontainers.image.title="intentwatch" \
      org.opencontainers.image.description="Watches cross-chain stablecoin transfers and turns every change into a signed webhook, an e-mail and Prometheus metrics." \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="${VERSION}"

# For configs that name no redis.url: the daemon then starts a private redis-server as its child.
RUN apt-get update \
 && apt-get install -y --no-install-recommends redis-server \
 && rm -rf /var/lib/apt/lists/*

# Each memory arena of the C library keeps what its threads have freed. By default there are up to eight for each processor.
ENV NODE_ENV=production MALLOC_ARENA_MAX=1
COPY --from=package /opt/intentwatch /opt/intentwatch
RUN ln -s /opt/intentwatch/bin/intentwatch.mjs /usr/local/bin/intentwatch

# All that is ever written: nothing else of the root is nobody's, and it may be mounted read-only with a tmpfs at /tmp.
# `dataDir: /var/lib/intentwatch` in the config keeps the private server's data on this volume.
RUN mkdir -p /etc/intentwatch && install -d -m 700 -o 65534 -g 65534 /var/lib/intentwatch
VOLUME /var/lib/intentwatch
# nobody, as a number: Kubernetes' runAsNonRoot knows no names.
USER 65534:65534
WORKDIR /etc/intentwatch

# Reachable from outside the container only with `server.host: 0.0.0.0` in the config. A config with another
# `server.port` needs INTENTWATCH_PORT with the same number, for the health check.
EXPOSE 9464
HEALTHCHECK --interval=15s --timeout=5s --start-period=20s --retries=3 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:' + (process.env.INTENTWATCH_PORT || 9464) + '/healthz', { signal: AbortSignal.timeout(4000) }).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]

ENTRYPOINT ["intentwatch"]
CMD ["start", "--config", "/etc/intentwatch/intentwatch.yaml"]
