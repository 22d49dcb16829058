/** Why a server could not listen, in the words of the config. `cause` is the system's error. */
export function listenError(cause: unknown, at: { host: string; port: number }): Error {
  return new Error(reason(codeOf(cause), at), { cause });
}

function reason(code: string, { host, port }: { host: string; port: number }): string {
  switch (code) {
    case 'EADDRINUSE':
      return `server.port ${port} on ${host} is in use; expected a free port: stop what listens there, or configure another (0 takes a free one)`;
    case 'EACCES':
      return `server.port ${port} on ${host} needs more rights than this process has; expected a port from 1024 on`;
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `server.host ${host} is no address of this machine (${code}); expected one, like 127.0.0.1 or 0.0.0.0`;
    default:
      return `server.host ${host}, server.port ${port}: cannot listen there (${code})`;
  }
}

function codeOf(error: unknown): string {
  if (error instanceof Error && 'code' in error) return String(error.code);
  return error instanceof Error ? error.message : String(error);
}
