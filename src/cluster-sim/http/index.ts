export { type ApiServerOptions, createApiServer } from "./handler.ts"
export { type ServeOptions, type Serving, serveHttp } from "./serve.ts"
