export type { Failure, FailureClass, Platform, Resolution, Resolved } from "#core/image/resolution.ts"
export {
  type Credentials,
  createRegistryClient,
  type RegistryClient,
  type RegistryClientOptions,
  type ResolveOptions,
} from "./client.ts"
export { parseAllowed } from "./endpoint.ts"
