export type { KindStorage, StorageChange } from "./apiserver/index.ts"
export type { User } from "./auth/index.ts"
export { type Cluster, type ClusterOptions, createCluster } from "./cluster.ts"
export { createGateway, type SimulatedGateway } from "./gateway-api/index.ts"
export { type ServeOptions, type Serving, serveHttp } from "./http/index.ts"
export type { Json, Obj } from "./object.ts"
export {
  answersOf,
  digestOf,
  everyPart,
  openRegistries,
  type PartsOptions,
  parseRegistries,
  type RegistriesDescription,
} from "./parts.ts"
export type { Part, PhysicsWorld, SimulatedNode } from "./physics/world.ts"
export { createPrometheus } from "./prometheus/index.ts"
export type { HistoryEntry } from "./store/index.ts"
export { type Clients, createTraffic, type Traffic, type TrafficOptions } from "./traffic/index.ts"
