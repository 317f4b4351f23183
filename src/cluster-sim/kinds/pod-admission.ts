import { generateName } from "../apiserver/names.ts"
import { forbidden } from "../apiserver/refusals.ts"
import type { Json, Obj } from "../object.ts"
import { set } from "./edit.ts"

/** Finds another object by its kind and name. */
export type Lookup = (apiVersion: string, kind: string, name: { namespace?: string; name: string }) => Obj | undefined

/**
 * Gives a new pod the priority of its class, and the pull secrets and the token of its service account. Refuses a pod
 * that names a missing class or account. The account `default` is assumed to exist: a real cluster creates it with the
 * namespace.
 */
export function podAdmission(find: Lookup, random: () => number) {
  return ({ operation, kind, object, subresource }: PodRequest): Json => {
    if (operation !== "create" || kind.kind !== "Pod" || kind.group !== "" || subresource) return object
    const refuse = (why: string) => forbidden(kind, object.metadata.name ?? "", why)
    const spec = withAccount(withPriority(object.spec, find, refuse), object.metadata.namespace, {
      find,
      random,
      refuse,
    })
    return set(object, "spec", spec)
  }
}

type PodRequest = {
  operation: string
  kind: { group: string; kind: string; plural: string }
  object: Json
  subresource: string | undefined
}

type Refuse = (why: string) => Error

function withPriority(spec: Json, find: Lookup, refuse: Refuse): Json {
  const name = spec.priorityClassName
  if (!name) return spec
  const found = find("scheduling.k8s.io/v1", "PriorityClass", { name })
  if (!found) throw refuse(`no PriorityClass with name ${name} was found`)
  const { value = 0, preemptionPolicy = "PreemptLowerPriority" } = found
  if (spec.priority !== undefined && spec.priority !== value)
    throw refuse(
      `the integer value of priority (${spec.priority}) must not be provided in pod spec; priority admission controller computed ${value} from the given PriorityClass name`,
    )
  return { ...spec, priority: value, preemptionPolicy }
}

type Circumstances = { find: Lookup; random: () => number; refuse: Refuse }

function withAccount(given: Json, namespace: string, { find, random, refuse }: Circumstances): Json {
  const name = given.serviceAccountName || "default"
  const account = find("v1", "ServiceAccount", { namespace, name })
  if (!account && name !== "default")
    throw refuse(
      `error looking up service account ${namespace}/${name}: serviceaccount ${JSON.stringify(name)} not found`,
    )
  let spec = { ...given, serviceAccountName: name, serviceAccount: name }
  if (spec.automountServiceAccountToken ?? account?.automountServiceAccountToken ?? true)
    spec = mountToken(spec, random)
  const secrets = account?.imagePullSecrets
  return secrets?.length && !spec.imagePullSecrets?.length ? { ...spec, imagePullSecrets: secrets } : spec
}

const tokenPath = "/var/run/secrets/kubernetes.io/serviceaccount"

/** Mounts the token, the cluster's certificate and the namespace where clients expect them. */
export function mountToken(spec: Json, random: () => number): Json {
  const isMounted = (container: Json) => container.volumeMounts?.some((mount: Json) => mount.mountPath === tokenPath)
  const containers = [...(spec.containers ?? []), ...(spec.initContainers ?? [])]
  if (containers.every(isMounted)) return spec

  const name = generateName("kube-api-access-", random)
  const mount = { name, readOnly: true, mountPath: tokenPath }
  const mounted = (container: Json) =>
    isMounted(container) ? container : { ...container, volumeMounts: [...(container.volumeMounts ?? []), mount] }
  const volume = {
    name,
    projected: {
      defaultMode: 420,
      sources: [
        { serviceAccountToken: { expirationSeconds: 3607, path: "token" } },
        { configMap: { name: "kube-root-ca.crt", items: [{ key: "ca.crt", path: "ca.crt" }] } },
        {
          downwardAPI: {
            items: [{ path: "namespace", fieldRef: { apiVersion: "v1", fieldPath: "metadata.namespace" } }],
          },
        },
      ],
    },
  }
  return {
    ...spec,
    volumes: [...(spec.volumes ?? []), volume],
    ...(spec.initContainers && { initContainers: spec.initContainers.map(mounted) }),
    containers: (spec.containers ?? []).map(mounted),
  }
}
