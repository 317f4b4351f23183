/**
 * The parts of Node's HTTP that we use. An `import` of node:http evaluates all its exports, and for its WebSocket Node loads
 * all of undici: 50 ms at each start of `aim` and 11 MB while a controller runs, and we use none of it.
 */
export const { Agent, createServer, request } = process.getBuiltinModule("node:http")

/** TLS takes as long to load as everything else of HTTP, so it is loaded only for a server that uses it. */
export const loadHttps = () => process.getBuiltinModule("node:https")
