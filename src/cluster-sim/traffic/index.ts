export type { Labels } from "./counters.ts"
export type { Clients, ClientsOptions, Version } from "./network.ts"
export type { Count, Failure, TrafficRecord, Why } from "./record.ts"
export { createTraffic, type Traffic, type TrafficOptions } from "./traffic.ts"
