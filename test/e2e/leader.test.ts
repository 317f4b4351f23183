import { beforeAll, expect, test } from "vitest"
import { installKinds } from "#test/support/fleet.ts"
import { floor, uniqueNamespace, until } from "#test/support/floor.ts"
import { startProgram } from "#test/support/program.ts"

beforeAll(installKinds)

const lease = (namespace: string) => `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/aim-controller`

async function holderOf(namespace: string): Promise<string | undefined> {
  return (await floor().api.find(lease(namespace)))?.spec.holderIdentity || undefined
}

test("a leader that is stopped loses its Lease to another, and ends when it is continued; one that ends by SIGTERM hands it on", async () => {
  const namespace = await uniqueNamespace()
  const start = () =>
    startProgram("bin/aim", ["controller", "--kubeconfig", floor().kubeconfig, "--lease-namespace", namespace])
  const first = start()
  const firstHolder = await until("the first to lead", () => holderOf(namespace))

  const second = start()
  first.kill("SIGSTOP")
  const secondHolder = await until("the second to take over", async () => {
    const holder = await holderOf(namespace)
    return holder !== firstHolder && holder
  })
  first.kill("SIGCONT")
  expect(await first.ended).toBe(1)
  expect(first.output).toContain("lead")
  expect(await holderOf(namespace)).toBe(secondHolder)

  second.kill("SIGTERM")
  expect(await second.ended).toBe(0)
  expect(await holderOf(namespace)).toBeUndefined()
})
