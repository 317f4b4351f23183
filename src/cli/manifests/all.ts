import type { Permission } from "#runtime/controller.ts"
import { agentManifests, usualSocket } from "./agent.ts"
import { controllerDeployment, controllerNetworkPolicy, namespaceManifest } from "./controller.ts"
import { type DashboardWanted, dashboardManifests } from "./dashboard.ts"
import type { Manifest } from "./names.ts"
import { policies } from "./policies.ts"
import { type Declared, type ForeignKind, roles, rolesFor } from "./rbac.ts"

export type Section = "crds" | "rbac" | "policies" | "agent" | "dashboard" | "all"

export type Wanted = {
  section: Section
  foreign: readonly ForeignKind[]
  namespace: string
  image: string
  /** The socket of the nodes' container runtime. Without it, `all` has no agents. */
  criSocket?: string | undefined
  /** Wanted by its own section alone. */
  dashboard?: DashboardWanted | undefined
}

/** What the code declares. */
export type Sources = Declared & { crds: readonly Manifest[]; agent: readonly Permission[] }

/** What `aim manifests` prints, in an order in which it can be applied. */
export function manifests(wanted: Wanted, sources: Sources): Manifest[] {
  const { section, foreign, namespace, image, criSocket } = wanted
  const extra = foreign.flatMap(rolesFor)
  switch (section) {
    case "crds":
      return [...sources.crds]
    case "policies":
      return policies()
    case "rbac":
      // For an existing installation: only the additions, so that the rest need not be compared.
      return foreign.length > 0 ? extra : roles(sources, namespace)
    case "agent":
      return agentManifests({ image, criSocket: criSocket ?? usualSocket, permissions: sources.agent })
    case "dashboard":
      return dashboardManifests({ ...wanted.dashboard!, namespace, image })
    case "all":
      return [
        namespaceManifest(namespace),
        ...sources.crds,
        ...roles(sources, namespace),
        ...extra,
        ...policies(),
        controllerNetworkPolicy(namespace),
        controllerDeployment({ namespace, image }),
        ...(criSocket ? agentManifests({ image, criSocket, permissions: sources.agent }) : []),
      ]
  }
}
