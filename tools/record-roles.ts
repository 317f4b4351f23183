// Asks a real Kubernetes for the roles and bindings that its API server makes by itself, and keeps them for cluster-sim:
//
//   npm run cluster -- --no-kubelet --nodes 1 &     fresh, so that nothing else is aggregated into its roles
//   kubectl proxy --port=18801 &
//   node tools/record-roles.ts http://127.0.0.1:18801
import { writeFile } from "node:fs/promises"

// biome-ignore lint/suspicious/noExplicitAny: answers of a server
type Json = any

const server = process.argv[2]
if (!server) throw new Error("name the server: http://127.0.0.1:18801")

const group = "rbac.authorization.k8s.io/v1"
const kinds = {
  clusterroles: "ClusterRole",
  clusterrolebindings: "ClusterRoleBinding",
  roles: "Role",
  rolebindings: "RoleBinding",
}
const lines: string[] = []
for (const [plural, kind] of Object.entries(kinds)) {
  const selector = encodeURIComponent("kubernetes.io/bootstrapping=rbac-defaults")
  const { items } = await get(`/apis/${group}/${plural}?labelSelector=${selector}`)
  for (const { metadata, ...rest } of items) {
    const { name, namespace, labels, annotations } = metadata
    // A role that is made of others is bare until the controller fills it.
    const rules = rest.aggregationRule ? { rules: null } : {}
    const object = {
      apiVersion: group,
      kind,
      metadata: { name, ...(namespace && { namespace }), labels, annotations },
      ...rest,
      ...rules,
    }
    lines.push(JSON.stringify(object))
  }
}
await writeFile(
  `${import.meta.dirname}/../src/cluster-sim/auth/roles.generated.json`,
  `[\n${lines.map(line => `  ${line}`).join(",\n")}\n]\n`,
)

async function get(path: string): Promise<Json> {
  const response = await fetch(`${server}${path}`)
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
  return response.json()
}
