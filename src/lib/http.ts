/**
 * What we use of Node's HTTP. An `import` of node:http evaluates all it exports, and for its WebSocket Node loads the
 * whole of undici: 50 ms at each start of `aim` and 11 MB for as long as a controller runs, and we use none of it.
 */
export const { Agent, createServer, request } = process.getBuiltinModule("node:http")

/** TLS takes as long to load as everything else of HTTP, so it is loaded for a server that speaks it. */
export const loadHttps = () => process.getBuiltinModule("node:https")
