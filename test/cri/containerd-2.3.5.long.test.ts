import { join } from "node:path"
import { startCluster } from "#tools/kube/cluster.ts"
import { repository } from "#tools/kube/folders.ts"
import { realFloor } from "./harness/real.ts"
import { criSuite } from "./harness/suite.ts"

criSuite({
  recorded: "containerd-2.3.5",
  async open() {
    const say = (line: string) => process.stderr.write(`containerd 2.3.5: ${line}\n`)
    const cluster = await startCluster({ kwokNodes: 0, containerd: "2.3.5", say })
    const { registry = "", containerdSocket = "" } = cluster
    const floor = await realFloor({ ...cluster, registry, containerdSocket })
    const close = async () => {
      await floor.close()
      cluster.keepLogs(join(repository, ".logs", "containerd-2.3.5"))
      await cluster.stop()
    }
    return { ...floor, close }
  },
})
