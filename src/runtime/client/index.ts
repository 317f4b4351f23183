export type {
  Client,
  DeleteOptions,
  List,
  ListOptions,
  Patch,
  WatchEvent,
  WatchOptions,
  WriteOptions,
} from "./client.ts"
export { type Connected, type ConnectOptions, connect } from "./connect.ts"
export { type ClientOptions, createClient, type RequestInfo } from "./create-client.ts"
export { type Cause, type FailureKind, isFailure, KubeError } from "./errors.ts"
export { httpsTransport } from "./https-transport.ts"
export { type InClusterOptions, inClusterConfig } from "./in-cluster.ts"
export { type KubeconfigOptions, loadKubeconfig } from "./kubeconfig.ts"
export { ConfigError, type Credential, type Credentials, fixedCredentials, type ServerConfig } from "./server-config.ts"
export { NotSent, type Request, type Response, type Transport } from "./transport.ts"
