import type { Client } from "#runtime/client/client.ts"
import { isFailure, KubeError } from "#runtime/client/errors.ts"
import type { KubeObject, Resource } from "#runtime/resource.ts"
import { connectionOf, Failure, type Input, type Run, UsageError } from "../command.ts"
import {
  controllerName,
  controllerSubject,
  type Manifest,
  partOf,
  targetRole,
  targetRoleRef,
} from "../manifests/names.ts"
import { checkNamespace } from "../names.ts"
import { toDocuments } from "../render/yaml.ts"

const rbac = (plural: string, kind: string, namespaced: boolean): Resource => ({
  group: "rbac.authorization.k8s.io",
  version: "v1",
  plural,
  kind,
  namespaced,
})
const roleBindings = rbac("rolebindings", "RoleBinding", true)
const clusterRoleBindings = rbac("clusterrolebindings", "ClusterRoleBinding", false)
const clusterRoles = rbac("clusterroles", "ClusterRole", false)

type Wanted = { places: Place[]; controllerNamespace: string; revoke: boolean; print: "yaml" | "json" | undefined }
/** A namespace, or undefined for all of them. */
type Place = string | undefined

export type Done = { place: Place; outcome: "granted" | "already granted" | "revoked" | "nothing to revoke" }

export const run: Run = async (input, world) => {
  const wanted = read(input)
  if (wanted.print) return { text: print(wanted), exitCode: 0 }
  const client = await world.connect(connectionOf(input))
  try {
    const done: Done[] = []
    for (const place of wanted.places) {
      try {
        done.push(await (wanted.revoke ? revoke(client, place) : grant(client, place, wanted.controllerNamespace)))
      } catch (error) {
        for (const line of done) world.say(sentence(line, wanted)) // what was done before stays done
        throw explained(error, place, wanted.revoke)
      }
    }
    if (!wanted.revoke) world.say(await whatItAllows(client, world.program))
    return { text: done.map(line => `${sentence(line, wanted)}\n`).join(""), exitCode: 0 }
  } finally {
    client.close()
  }
}

function read(input: Input): Wanted {
  const { arguments: names, options } = input
  const named = connectionOf(input).namespace
  const all = Boolean(options.all)
  const given = [...new Set([...names, ...(named ? [named] : [])])]
  if (all && given.length > 0)
    throw new UsageError(`--all is every namespace, also ${given[0]}: write one or the other`)
  if (!all && given.length === 0) throw new UsageError("grant needs a NAMESPACE, or --all for every one")
  const output = options.output as "yaml" | "json" | undefined
  return {
    places: all ? [undefined] : given.map(name => checkNamespace(name, "NAMESPACE")),
    controllerNamespace: checkNamespace(options.controllerNamespace as string, "--controller-namespace"),
    revoke: Boolean(options.revoke),
    print: output ?? (options.dryRun ? "yaml" : undefined),
  }
}

/** The grant itself: whoever may write this lets the controllers in. */
export const bindingFor = (place: Place, controllerNamespace: string): Manifest & KubeObject => ({
  apiVersion: "rbac.authorization.k8s.io/v1",
  kind: place === undefined ? "ClusterRoleBinding" : "RoleBinding",
  metadata: { name: targetRole, ...(place !== undefined && { namespace: place }), labels: partOf },
  roleRef: targetRoleRef,
  subjects: [controllerSubject(controllerNamespace)],
})

function print({ places, controllerNamespace, print }: Wanted): string {
  const bindings = places.map(place => bindingFor(place, controllerNamespace))
  if (print === "yaml") return toDocuments(bindings)
  const value = bindings.length === 1 ? bindings[0] : { apiVersion: "v1", kind: "List", items: bindings }
  return `${JSON.stringify(value, null, 2)}\n`
}

const resourceFor = (place: Place) => (place === undefined ? clusterRoleBindings : roleBindings)
const nameFor = (place: Place) => ({ name: targetRole, namespace: place })

type Binding = KubeObject & { roleRef?: { kind?: string; name?: string }; subjects?: Record<string, string>[] }

export async function grant(client: Client, place: Place, controllerNamespace: string): Promise<Done> {
  const wanted = bindingFor(place, controllerNamespace)
  try {
    await client.create(resourceFor(place), wanted)
    return { place, outcome: "granted" }
  } catch (error) {
    if (!isFailure(error, "Exists")) throw error
  }
  const found = await client.get<Binding>(resourceFor(place), nameFor(place))
  if (found.roleRef?.kind !== "ClusterRole" || found.roleRef.name !== targetRole)
    throw new Failure(
      `${where(place)} has another ${resourceFor(place).kind} named ${targetRole}, for ${found.roleRef?.kind} ${found.roleRef?.name}: delete it first`,
    )
  const { name, namespace } = controllerSubject(controllerNamespace)
  const holds = found.subjects?.some(
    subject => subject.kind === "ServiceAccount" && subject.name === name && subject.namespace === namespace,
  )
  if (holds) return { place, outcome: "already granted" }
  // Others that were added by hand keep what they have; with its resourceVersion, so that nobody's change is lost.
  await client.replace(resourceFor(place), {
    ...found,
    subjects: [...(found.subjects ?? []), controllerSubject(controllerNamespace)],
  } as Binding)
  return { place, outcome: "granted" }
}

export async function revoke(client: Client, place: Place): Promise<Done> {
  try {
    await client.delete(resourceFor(place), nameFor(place))
    return { place, outcome: "revoked" }
  } catch (error) {
    if (isFailure(error, "NotFound")) return { place, outcome: "nothing to revoke" }
    throw error
  }
}

/** Read from the role itself: it grows with `aim manifests rbac --for`. */
async function whatItAllows(client: Client, program: string): Promise<string> {
  type Role = KubeObject & { rules?: { apiGroups?: string[]; resources?: string[]; verbs?: string[] }[] }
  try {
    const { rules } = await client.get<Role>(clusterRoles, { name: targetRole })
    const allowed = (rules ?? []).flatMap(({ apiGroups = [], resources = [], verbs = [] }) =>
      resources.map(resource => `${verbs.join("/")} ${[resource, apiGroups[0]].filter(Boolean).join(".")}`),
    )
    return allowed.length > 0
      ? `${targetRole} allows: ${allowed.join(", ")}`
      : `${targetRole} allows nothing yet: its base role is missing; run ${program} manifests rbac | kubectl apply -f -`
  } catch (error) {
    if (isFailure(error, "NotFound"))
      return `There is no ClusterRole ${targetRole} yet, so nothing is allowed: run ${program} manifests | kubectl apply -f -`
    if (isFailure(error, "Forbidden")) return `To see what it allows: kubectl describe clusterrole ${targetRole}`
    throw error
  }
}

function explained(error: unknown, place: Place, isRevoke: boolean): unknown {
  if (!(error instanceof KubeError)) return error
  if (error.kind === "NotFound" && place !== undefined)
    return new Failure(
      /clusterrole/i.test(error.message)
        ? `there is no ClusterRole ${targetRole}: install first, aim manifests | kubectl apply -f -`
        : `there is no namespace ${place}`,
    )
  if (error.kind !== "Forbidden" || error.status === 401) return error
  const who =
    place === undefined
      ? "A cluster administrator may do it."
      : isRevoke
        ? `Whoever may delete RoleBindings in ${place} may do it, as its administrators may.`
        : `Whoever may create RoleBindings in ${place} and holds all that ${targetRole} allows there may do it, or has the verb bind on that ClusterRole: an administrator of the namespace, or of the cluster.`
  return new Failure(`you may not ${isRevoke ? "revoke" : "grant"} this ${where(place)}: ${error.message}\n${who}`)
}

const where = (place: Place) => (place === undefined ? "in every namespace" : `in namespace ${place}`)

function sentence({ place, outcome }: Done, { controllerNamespace }: Wanted): string {
  const account = `${controllerNamespace}/${controllerName}`
  switch (outcome) {
    case "granted":
      return `granted: ${account} may change workloads ${where(place)}`
    case "already granted":
      return `already granted: ${account} may change workloads ${where(place)}`
    case "revoked":
      return `revoked: the grant ${where(place)}${place === undefined ? "; those of single namespaces stay" : ""}`
    case "nothing to revoke":
      return `nothing to revoke ${where(place)}`
  }
}
