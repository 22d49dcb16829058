const http = process.getBuiltinModule('node:http');

/**
 * The names of `node:http` that the program uses. An import of that module reads all its names, and some of them load Node's own
 * copy of undici, which nobody needs: 25 ms of each start.
 */
export const { STATUS_CODES, request } = http;

/** The `request` of `node:https`, which loads TLS. */
export function requestByHttps(): typeof request {
  return process.getBuiltinModule('node:https').request;
}
