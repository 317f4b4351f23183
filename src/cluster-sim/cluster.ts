import type { Transport } from "#runtime/client/transport.ts"
import type { Clock } from "#runtime/clock.ts"
import { type Random, seededRandom } from "#runtime/random.ts"
import { admissionPolicies } from "./admission/index.ts"
import { type Admission, createStorage, type ServerStorage } from "./apiserver/index.ts"
import type { ServedKind } from "./apiserver/kind.ts"
import { anonymous, bootstrapRoles, createAuth, escalationCheck, superuser, type User } from "./auth/index.ts"
import { serveCustomKinds } from "./crd/index.ts"
import { createApiServer } from "./http/index.ts"
import { builtInKinds, podAdmission } from "./kinds/index.ts"
import { limitAdmission } from "./limits/index.ts"
import type { Part, PhysicsWorld, SimulatedNode } from "./physics/world.ts"
import { createStore, type HistoryEntry, type Store } from "./store/index.ts"

export type ClusterOptions = {
  clock: Clock
  /** All randomness in this cluster follows from it. */
  seed?: number
  /** Default: every built-in kind. */
  kinds?: readonly ServedKind[]
  admission?: readonly Admission[]
  /** Bearer tokens with their users. */
  users?: Readonly<Record<string, User>>
  /** Signs the tokens of service accounts. Must be given if the cluster can be reached from outside of tests. */
  tokenKey?: string
  /** Creates the roles that a real API server has from its start. Without it, only roles created later exist. */
  hasDefaultRoles?: boolean
  /** The moving parts, in starting order: controllers, scheduler, kubelets. Default: none, only an API. */
  parts?: readonly ((world: PhysicsWorld) => Part)[]
  /** Called with every committed write, so that tests can check invariants. */
  history?: (entry: HistoryEntry) => void
  /** Changes kept per kind for watches that resume. */
  keptChanges?: number
  /** A cluster as returned by `store.dump()`. */
  saved?: ReturnType<Store["dump"]> | undefined
}

export type Cluster = {
  /** For `createClient`: a request without credentials may do everything. */
  transport: Transport
  /** For `serveHttp`: a request without credentials is from this user, or anonymous. */
  front(user?: User): Transport
  storage: ServerStorage
  store: Store
  random: Random
  /** A node with its container runtime, while the moving parts run. A restart of the parts makes it anew. */
  node(name: string): SimulatedNode | undefined
  start(): void
  /** Stops the moving parts; the API keeps answering. */
  stop(): void
}

/** A Kubernetes in this process: an API server on a store in memory, with controllers, scheduler and kubelets. */
export function createCluster(options: ClusterOptions): Cluster {
  const { clock, seed = 1, admission = [], parts = [], saved, history, keptChanges } = options
  const random = seededRandom(seed)
  const store = createStore({ history, ...(keptChanges !== undefined && { keptChanges }) }, saved)
  const kinds = options.kinds ?? builtInKinds()
  const pods = podAdmission((apiVersion, kind, name) => {
    const served = storage.kind(apiVersion, kind)
    return served && storage.find(served, name)
  }, random.next)
  const limits = limitAdmission(
    () => storage,
    () => clock.now(),
  )
  const storage: ServerStorage = createStorage({
    ...{ store, clock, random, kinds },
    admission: [limits.admission, pods, ...admission, request => escalation(request)],
    validations: limits.validations,
    policies: storage => admissionPolicies(storage, (user, attributes) => auth.authorize(user, attributes)),
  })
  const auth = createAuth({ storage, clock, random, users: options.users, key: options.tokenKey })
  const escalation = escalationCheck(auth)
  const api = { storage, clock, random, auth }
  const transport = createApiServer({ ...api, fallback: superuser })
  const moving = parts.map(part => part({ storage, clock, random }))
  let stops: (() => void)[] = []

  serveCustomKinds({ storage, clock }) // part of the API server: definitions also work without moving parts
  if (!saved) bootstrap(storage)
  if (options.hasDefaultRoles) bootstrapRoles(storage)
  return {
    transport,
    front: (user = anonymous) => createApiServer({ ...api, fallback: user }),
    storage,
    store,
    random,
    node: name => moving.map(part => part.node?.(name)).find(Boolean),
    start() {
      if (stops.length === 0) stops = moving.map(part => part.start())
    },
    stop() {
      for (const stop of stops.toReversed()) stop()
      stops = []
    },
  }
}

/** Creates the objects that a real API server creates at its start. */
function bootstrap(storage: ServerStorage) {
  for (const { apiVersion, kind, ...object } of born) {
    const served = storage.kind(apiVersion, kind)
    if (served) storage.create(served, object, { fieldManager: "kube-apiserver" })
  }
}

const namespace = (name: string) => ({ apiVersion: "v1", kind: "Namespace", metadata: { name } })
const priorityClass = (name: string, value: number, description: string) => ({
  apiVersion: "scheduling.k8s.io/v1",
  kind: "PriorityClass",
  metadata: { name },
  value,
  description,
})

const born = [
  ...["kube-system", "kube-public", "kube-node-lease", "default"].map(namespace),
  priorityClass(
    "system-node-critical",
    2_000_001_000,
    "Used for system critical pods that must not be moved from their current node.",
  ),
  priorityClass(
    "system-cluster-critical",
    2_000_000_000,
    "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
  ),
  {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "kubernetes", namespace: "default", labels: { component: "apiserver", provider: "kubernetes" } },
    spec: {
      type: "ClusterIP",
      clusterIP: "10.96.0.1",
      clusterIPs: ["10.96.0.1"],
      ipFamilies: ["IPv4"],
      ipFamilyPolicy: "SingleStack",
      ports: [{ name: "https", port: 443, protocol: "TCP", targetPort: 6443 }],
    },
  },
]
