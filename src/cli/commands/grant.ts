import { counted, nameSome } from "#lib/text.ts"
import type { Client } from "#runtime/client/client.ts"
import { isFailure, KubeError } from "#runtime/client/errors.ts"
import type { KubeObject, Resource } from "#runtime/resource.ts"
import { connectionOf, Failure, type Input, type Run, UsageError } from "../command.ts"
import {
  controllerName,
  controllerSubject,
  type Manifest,
  partOf,
  pullSecretsRole,
  routesRole,
  secretsRole,
  targetRole,
  targetRoleRef,
} from "../manifests/names.ts"
import { checkNamespace, isObjectName } from "../names.ts"
import { toDocuments } from "../render/yaml.ts"

const rbac = (plural: string, kind: string, namespaced: boolean): Resource => ({
  group: "rbac.authorization.k8s.io",
  version: "v1",
  plural,
  kind,
  namespaced,
})
const roles = rbac("roles", "Role", true)
const roleBindings = rbac("rolebindings", "RoleBinding", true)
const clusterRoleBindings = rbac("clusterrolebindings", "ClusterRoleBinding", false)
const clusterRoles = rbac("clusterroles", "ClusterRole", false)
const namespaces: Resource = { group: "", version: "v1", plural: "namespaces", kind: "Namespace", namespaced: false }

type Wanted = {
  /** Undefined for every existing namespace except those of the system. */
  places: string[] | undefined
  controllerNamespace: string
  /** Of each role that reads Secrets, those that were named. One that is left out keeps what was named before. */
  secrets: readonly Readable[]
  revoke: boolean
  isMeant: boolean
  print: "yaml" | "json" | undefined
}

export type Done = {
  place: string
  outcome: "granted" | "already granted" | "revoked" | "nothing to revoke"
  secrets?: readonly string[]
  /** Routes and ScaledObjects are not among what was granted, and why. */
  withoutRoutes?: string | undefined
}

type Readable = { role: string; verbs: string[]; names: string[] }

/** Secrets of registries are read once; those of Canaries, whose pods may use them, are watched by their names. */
const secretRoles = [
  { option: "pullSecrets", flag: "--pull-secrets", role: pullSecretsRole, verbs: ["get"] },
  { option: "secrets", flag: "--secrets", role: secretsRole, verbs: ["get", "list", "watch"] },
] as const

export const run: Run = async (input, world) => {
  const wanted = read(input)
  if (wanted.print && wanted.places) return { text: print(wanted.places, wanted), exitCode: 0 }
  const client = await world.connect(connectionOf(input))
  try {
    const places = wanted.places ?? (await everyPlace(client, wanted))
    if (wanted.print) return { text: print(places, wanted), exitCode: 0 }
    if (!wanted.places && !wanted.revoke && !wanted.isMeant) throw new UsageError(whatAllMeans(places, wanted))
    const done: Done[] = []
    for (const place of places) {
      try {
        done.push(await (wanted.revoke ? revoke(client, place, wanted) : grant(client, place, wanted)))
      } catch (error) {
        for (const line of done) world.say(sentence(line, wanted)) // earlier namespaces stay granted
        throw explained(error, place, wanted.revoke)
      }
    }
    if (wanted.revoke && !wanted.places && (await revokeEverywhere(client)))
      done.push({ place: "every namespace", outcome: "revoked" })
    if (!wanted.revoke) world.say(await whatItAllows(client, world.program))
    for (const { place, withoutRoutes } of done)
      if (withoutRoutes !== undefined)
        world.say(
          `not granted in ${place}: HTTPRoutes, HTTPProxies, TraefikServices, VirtualServices, TrafficSplits and ScaledObjects, which Canaries with a gateway or with KEDA need. An account can grant them that holds all rights of ${routesRole} there: ${withoutRoutes}`,
        )
    return { text: told(done, wanted), exitCode: 0 }
  } finally {
    client.close()
  }
}

function read(input: Input): Wanted {
  const { arguments: names, options } = input
  const named = connectionOf(input).namespace
  const all = Boolean(options.all)
  const given = [...new Set([...names, ...(named ? [named] : [])])]
  if (all && given.length > 0) throw new UsageError(`--all includes ${given[0]}: write one or the other`)
  if (!all && given.length === 0) throw new UsageError("grant needs a NAMESPACE, or --all for every namespace")
  const secrets = secretRoles.flatMap(({ option, flag, role, verbs }): Readable[] => {
    const given = (options[option] as string[] | undefined)?.flatMap(each => each.split(","))
    if (!given) return []
    if (all) throw new UsageError(`${flag} belong to one namespace: leave out --all`)
    if (options.revoke) throw new UsageError(`--revoke also revokes the Secrets: leave out ${flag}`)
    const names = [...new Set(given.map(name => checkSecret(flag, name)))].sort()
    return [{ role, verbs: [...verbs], names }]
  })
  const output = options.output as "yaml" | "json" | undefined
  return {
    places: all ? undefined : given.map(name => checkNamespace(name, "NAMESPACE")),
    controllerNamespace: checkNamespace(options.controllerNamespace as string, "--controller-namespace"),
    secrets,
    revoke: Boolean(options.revoke),
    isMeant: Boolean(options.yes),
    print: output ?? (options.dryRun ? "yaml" : undefined),
  }
}

function checkSecret(flag: string, name: string): string {
  if (isObjectName(name)) return name
  throw new UsageError(`${flag}: ${name || '""'} is not the name of a Secret`)
}

/** The namespaces of Kubernetes itself, and ours. Workloads there run the cluster. */
const isSystem = (namespace: string, { controllerNamespace }: Wanted) =>
  namespace.startsWith("kube-") || namespace === controllerNamespace

async function everyPlace(client: Client, wanted: Wanted): Promise<string[]> {
  const { items } = await client.list(namespaces, { metadataOnly: true })
  const names = items.map(({ metadata }) => metadata.name!)
  return names.filter(name => wanted.revoke || !isSystem(name, wanted)).sort()
}

function whatAllMeans(places: readonly string[], { controllerNamespace }: Wanted): string {
  const few = nameSome(places.slice(0, 10), places.length)
  return [
    `--all lets ${controllerNamespace}/${controllerName} change the workloads of ${counted(places.length, "namespace")}: ${few}`,
    `It leaves out kube-* and ${controllerNamespace}, namespaces that are created later, and Secrets. To confirm, add --yes.`,
  ].join("\n")
}

/** The grant itself: this binding lets the controllers act in the namespace. */
const bindingFor = (place: string, controllerNamespace: string, roleRef = targetRoleRef): Manifest & KubeObject => ({
  apiVersion: "rbac.authorization.k8s.io/v1",
  kind: "RoleBinding",
  metadata: { name: roleRef.name, namespace: place, labels: partOf },
  roleRef,
  subjects: [controllerSubject(controllerNamespace)],
})

const routesRoleRef = { ...targetRoleRef, name: routesRole }

/** Only the named Secrets, in a role of the namespace: a binding elsewhere cannot use it. */
const secretsFor = (place: string, { role: name, names, verbs }: Readable, controllerNamespace: string) => {
  const metadata = { name, namespace: place, labels: partOf }
  const apiVersion = "rbac.authorization.k8s.io/v1"
  return {
    role: {
      ...{ apiVersion, kind: "Role", metadata },
      rules: [{ apiGroups: [""], resources: ["secrets"], resourceNames: names, verbs }],
    } satisfies Manifest & KubeObject,
    binding: {
      ...{ apiVersion, kind: "RoleBinding", metadata },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name },
      subjects: [controllerSubject(controllerNamespace)],
    } satisfies Manifest & KubeObject,
  }
}

function print(places: readonly string[], { controllerNamespace, secrets, print }: Wanted): string {
  const objects: Manifest[] = places.flatMap(place => [
    ...secrets.flatMap(each => Object.values(secretsFor(place, each, controllerNamespace))),
    bindingFor(place, controllerNamespace, routesRoleRef),
    bindingFor(place, controllerNamespace),
  ])
  if (print === "yaml") return toDocuments(objects)
  const value = objects.length === 1 ? objects[0] : { apiVersion: "v1", kind: "List", items: objects }
  return `${JSON.stringify(value, null, 2)}\n`
}

type Subject = { kind?: string; name?: string; namespace?: string }
type Binding = KubeObject & { roleRef?: { kind?: string; name?: string }; subjects?: Subject[] }

async function grant(client: Client, place: string, wanted: Wanted): Promise<Done> {
  const { secrets, controllerNamespace } = wanted
  // Before the binding, which the controllers act on at once.
  for (const each of secrets) {
    const { role, binding } = secretsFor(place, each, controllerNamespace)
    await put(client, roles, role)
    await bind(client, binding, wanted)
  }
  const withoutRoutes = await bindRoutes(client, place, wanted)
  const isNew = await bind(client, bindingFor(place, controllerNamespace), wanted)
  const names = [...new Set(secrets.flatMap(({ names }) => names))].sort()
  return { place, outcome: isNew ? "granted" : "already granted", secrets: names, withoutRoutes }
}

/** Why routes and ScaledObjects are not granted. An installation of before has no role for them, and needs none. */
async function bindRoutes(client: Client, place: string, wanted: Wanted): Promise<string | undefined> {
  try {
    await client.get(clusterRoles, { name: routesRole })
  } catch (error) {
    if (isFailure(error, "NotFound")) return undefined
    if (!isFailure(error, "Forbidden")) throw error
  }
  try {
    await bind(client, bindingFor(place, wanted.controllerNamespace, routesRoleRef), wanted)
  } catch (error) {
    if (!isFailure(error, "Forbidden")) throw error
    return (error as KubeError).message
  }
  return undefined
}

async function put(client: Client, resource: Resource, object: Manifest & KubeObject): Promise<void> {
  try {
    await client.create(resource, object)
  } catch (error) {
    if (!isFailure(error, "Exists")) throw error
    const { name, namespace } = object.metadata
    const found = await client.get(resource, { name: name!, namespace })
    if (!isOurs(found))
      throw new Failure(`namespace ${namespace} has another ${resource.kind} named ${name}: delete it first`)
    await client.replace(resource, { ...found, ...object, metadata: found.metadata })
  }
}

const isOurs = ({ metadata }: KubeObject) =>
  Object.entries(partOf).every(([label, value]) => metadata.labels?.[label] === value)

/** Whether anything had to be written. */
async function bind(client: Client, wanted: Manifest & KubeObject, { controllerNamespace }: Wanted): Promise<boolean> {
  try {
    await client.create(roleBindings, wanted)
    return true
  } catch (error) {
    if (!isFailure(error, "Exists")) throw error
  }
  const { name, namespace } = wanted.metadata
  const found = await client.get<Binding>(roleBindings, { name: name!, namespace })
  if (!isFor(found, (wanted as Binding).roleRef)) throw new Failure(`${another(found)}: delete it first`)
  if (found.subjects?.some(isControllerOf(controllerNamespace))) return false
  // Subjects that were added by hand stay; the resourceVersion makes sure that no concurrent change is lost.
  await client.replace(roleBindings, {
    ...found,
    subjects: [...(found.subjects ?? []), controllerSubject(controllerNamespace)],
  } as Binding)
  return true
}

const isFor = ({ roleRef }: Binding, wanted: Binding["roleRef"]) =>
  roleRef?.kind === wanted?.kind && roleRef?.name === wanted?.name

const another = ({ metadata, roleRef }: Binding) =>
  `namespace ${metadata.namespace} has another RoleBinding named ${metadata.name}, for ${roleRef?.kind} ${roleRef?.name}`

const isControllerOf =
  (controllerNamespace: string) =>
  ({ kind, name, namespace }: Subject) =>
    kind === "ServiceAccount" && name === controllerName && namespace === controllerNamespace

async function revoke(client: Client, place: string, wanted: Wanted): Promise<Done> {
  const isDone = await unbind(client, place, targetRoleRef, wanted)
  const others = [await unbind(client, place, routesRoleRef, wanted)]
  for (const { role } of secretRoles) {
    const isUnbound = await unbind(client, place, { kind: "Role", name: role }, wanted)
    if (isUnbound) await deleteOurRole(client, place, role)
    others.push(isUnbound)
  }
  return { place, outcome: isDone || others.includes(true) ? "revoked" : "nothing to revoke" }
}

/** Removes our account from a binding, and deletes the binding when it has no other subject. */
async function unbind(client: Client, place: string, role: { kind: string; name: string }, wanted: Wanted) {
  const at = { name: role.name, namespace: place }
  const found = await orMissing(client.get<Binding>(roleBindings, at))
  if (!found) return false
  if (!isFor(found, role)) {
    if (!wanted.places) return false
    throw new Failure(`${another(found)}: it is not a grant, and is left as it is`)
  }
  const isController = isControllerOf(wanted.controllerNamespace)
  if (!found.subjects?.some(isController)) return false
  const others = found.subjects.filter(subject => !isController(subject))
  const { uid, resourceVersion } = found.metadata
  if (others.length > 0) await client.replace(roleBindings, { ...found, subjects: others } as Binding)
  else await client.delete(roleBindings, at, { ...(uid && { uid }), ...(resourceVersion && { resourceVersion }) })
  return true
}

async function deleteOurRole(client: Client, place: string, name: string): Promise<void> {
  const at = { name, namespace: place }
  const [role, binding] = [await orMissing(client.get(roles, at)), await orMissing(client.get(roleBindings, at))]
  if (role && !binding && isOurs(role)) await client.delete(roles, at)
}

/** A cluster-wide binding, as earlier versions wrote for --all, or as written by hand. */
async function revokeEverywhere(client: Client): Promise<boolean> {
  const found = await orMissing(client.get<Binding>(clusterRoleBindings, { name: targetRole }))
  if (!found || !isFor(found, targetRoleRef)) return false
  await client.delete(clusterRoleBindings, { name: targetRole })
  return true
}

async function orMissing<T>(asked: Promise<T>): Promise<T | undefined> {
  try {
    return await asked
  } catch (error) {
    if (isFailure(error, "NotFound")) return undefined
    throw error
  }
}

/** Read from the role itself, because `aim manifests rbac --for` extends it. */
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

function explained(error: unknown, place: string, isRevoke: boolean): unknown {
  if (!(error instanceof KubeError)) return error
  if (error.kind === "NotFound")
    return new Failure(
      /clusterrole/i.test(error.message)
        ? `there is no ClusterRole ${targetRole}: install first, aim manifests | kubectl apply -f -`
        : `there is no namespace ${place}`,
    )
  if (error.kind !== "Forbidden" || error.status === 401) return error
  const who = isRevoke
    ? `An account that may delete RoleBindings in ${place} can do it: an administrator of the namespace.`
    : `An account can do it that may create RoleBindings in ${place} and either holds all rights of ${targetRole} there or has the verb bind on that ClusterRole: an administrator of the namespace, or of the cluster.`
  return new Failure(
    `you may not ${isRevoke ? "revoke" : "grant"} this in namespace ${place}: ${error.message}\n${who}`,
  )
}

function told(done: readonly Done[], wanted: Wanted): string {
  // With --all, namespaces without a change are left out.
  const news = wanted.places ? done : done.filter(({ outcome }) => outcome !== "nothing to revoke")
  if (news.length === 0) return wanted.revoke ? "nothing to revoke\n" : "there is no namespace to grant\n"
  return news.map(line => `${sentence(line, wanted)}\n`).join("")
}

function sentence({ place, outcome, secrets: named = [] }: Done, { controllerNamespace }: Wanted): string {
  const account = `${controllerNamespace}/${controllerName}`
  const secrets = named.length > 0 ? ` and read ${named.length === 1 ? "Secret" : "Secrets"} ${named.join(", ")}` : ""
  switch (outcome) {
    case "granted":
    case "already granted":
      return `${outcome}: ${account} may change workloads${secrets} in namespace ${place}`
    case "revoked":
      return `revoked: the grant in ${place === "every namespace" ? place : `namespace ${place}`}`
    case "nothing to revoke":
      return `nothing to revoke in namespace ${place}`
  }
}
