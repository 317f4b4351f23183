import { spawn } from "node:child_process"
import { join } from "node:path"
import { expect } from "vitest"
import { run } from "#tools/kube/command.ts"
import { repository } from "#tools/kube/folders.ts"
import { floor } from "./floor.ts"

/** An installation in the worker's cluster, from what `aim manifests` prints. */

/** Runs a command to its end, as an administrator, and returns what it printed. */
export const aim = (...args: string[]): Promise<string> =>
  run(join(repository, "bin/aim"), args, { env: { ...process.env, KUBECONFIG: floor().kubeconfig } })

/** `npm run image`, pushed where the real node pulls from. */
export async function buildImage(): Promise<string> {
  const reference = `${floor().registry}/aim:e2e`
  await run(join(repository, "tools/run"), ["image", "--push", reference, "--plain-http"])
  return reference
}

export async function applyManifests(manifests: string): Promise<void> {
  const { kubectl, kubeconfig } = floor()
  const child = spawn(kubectl, ["apply", "--kubeconfig", kubeconfig, "-f", "-"], {
    stdio: ["pipe", "inherit", "inherit"],
  })
  child.stdin.end(manifests)
  expect(await new Promise(resolve => child.once("close", resolve))).toBe(0)
}

const clusterWide = [
  ...["clusterrole", "clusterrolebinding"],
  ...["validatingadmissionpolicy", "validatingadmissionpolicybinding"],
  ...["mutatingadmissionpolicy", "mutatingadmissionpolicybinding"],
]

/** Removes what was installed, except the kinds. */
export async function uninstall(): Promise<void> {
  const { kubectlRun } = floor()
  await kubectlRun("delete", clusterWide.join(), "--selector=app.kubernetes.io/part-of=autoimagemanager")
  await kubectlRun("delete", "namespace", "aim-system", "aim-agents", "--ignore-not-found", "--wait=true")
}
