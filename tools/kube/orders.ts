/** What the cluster's process asks of the one inside its namespaces, over Node's channel between parent and child. */
export type Order =
  | { do: "start"; name: string; command: string[]; log: string; env?: Record<string, string> }
  | { do: "stop"; name: string; signal: NodeJS.Signals }
  /** Comes with a listening socket of the outer network; every connection to it goes to `host:port` inside. */
  | { do: "relay"; host: string; port: number }
  /** Opens `port` inside; every connection to it goes to the same port of the outer loopback. */
  | { do: "expose"; port: number }
  | { do: "quit" }

/** What it says in return. */
export type News =
  | { ready: true }
  | { failed: string }
  | { started: string; pid: number }
  | { ended: string; how: string }
  /** Comes with the socket that listens inside. */
  | { exposed: number }

/** How the inside is set up; given once, at the start. */
export type Setup = { folder: string; hierarchies: Hierarchy[] }

/** One mounted cgroup tree, and the group in it that the cluster lives in. */
export type Hierarchy = { type: "cgroup" | "cgroup2"; options: string; mountPoint: string; group: string }

/** The cluster's own network, the same in every cluster because each has a network namespace of its own. */
export const network = {
  bridge: "aim0",
  address: "10.88.0.1",
  subnet: "10.88.0.0/16",
  prefixLength: 16,
  serviceRange: "10.96.0.0/16",
  apiService: "10.96.0.1",
  apiPort: 6443,
} as const
