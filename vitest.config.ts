import { availableParallelism } from "node:os"
import { defineConfig } from "vitest/config"
import { BaseSequencer, type TestSpecification } from "vitest/node"

/** Stories and runs over simulated clusters, and tests that start programs: seconds of CPU in each file. */
const simulation = [
  "test/{scenarios,simulation,model}/**/*.test.ts",
  "test/cri/cluster-sim.test.ts",
  "test/repository/toy-kind.test.ts",
  "src/cli/main.test.ts",
  "src/cli/commands/{demo,up}.test.ts",
  "src/cluster-sim/physics/node/soak.test.ts",
  "src/registry/memory.test.ts",
  "src/runtime/{leader,lease-connection,watchdog}.test.ts",
  "tools/{generate/generate,image/bundle}.test.ts",
]

const withoutACluster = {
  setupFiles: ["src/lib/plain-names.ts", "test/support/judge-every-run.ts"],
  // Hundreds of runs in one test, on a machine that may be busy with a whole Kubernetes.
  testTimeout: 120_000,
  maxWorkers: Number(process.env.AIM_WORKERS ?? availableParallelism()),
}

const onACluster = {
  setupFiles: ["test/support/open-floor.ts"],
  provide: { containerd: "1.6" as const },
  // A cluster on two cores: what is awaited is a condition, and this is only the end of patience.
  testTimeout: 600_000,
  hookTimeout: 600_000,
}

/** How many real clusters run side by side. Their tests wait most of the time, and other tests run beside them. */
const floors = Number(process.env.AIM_FLOORS ?? Math.min(Math.max(availableParallelism(), 2), 4))

/** They take longest, so they begin first: one that begins last is waited for alone. */
const longest = ["canary-gateway", "canary-service", "thousand", "canary-of-customers", "guide-real", "guide-up"]

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLong = (name: string) => (file: TestSpecification) => file.moduleId.includes(name)
    const first = longest.flatMap(name => files.filter(isLong(name)))
    return [...first, ...(await super.sort(files)).filter(file => !first.includes(file))]
  }
}

/**
 * Kinds of tests by what they need. `unit` and `simulation` need nothing but Node. `e2e` and `alone` need a real
 * Kubernetes: each worker has one of its own, so files side by side share nothing but the machine. Nothing else runs
 * beside those that are `alone`: they measure time, count what is left on the machine, or compare what two clusters do
 * within the same seconds. `long` needs one whose node has containerd 2.3.5.
 */
export default defineConfig({
  test: {
    globalSetup: ["test/support/floor-setup.ts"],
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        test: {
          name: "unit",
          include: [
            "{src,tools,examples}/**/*.test.ts",
            "test/{support,repository}/**/*.test.ts",
            "test/{conformance,cri}/harness/**/*.test.ts",
          ],
          exclude: simulation,
          // A file that needed a module of its own would have to say so. To import all of them for each file takes most
          // of the time.
          isolate: false,
          ...withoutACluster,
        },
      },
      { test: { name: "simulation", include: simulation, ...withoutACluster } },
      // The dashboard in Debian's chromium, on stories and on simulated clusters: one browser at a time.
      {
        test: {
          name: "browser",
          include: ["test/browser/*.test.ts"],
          ...withoutACluster,
          maxWorkers: 1,
          hookTimeout: 600_000,
          // The end of patience, as above: a browser on a busy machine may take seconds to draw.
          expect: { poll: { timeout: 60_000 } },
        },
      },
      {
        test: {
          name: "alone",
          include: ["test/e2e/alone/*.test.ts", "test/conformance/*.test.ts"],
          maxWorkers: 1,
          sequence: { groupOrder: 1 },
          ...onACluster,
        },
      },
      {
        test: {
          name: "e2e",
          include: ["test/{e2e,cri}/*.test.ts"],
          exclude: ["**/*.long.test.ts", ...simulation],
          maxWorkers: floors,
          sequence: { groupOrder: 2 },
          ...onACluster,
        },
      },
      {
        test: {
          name: "long",
          include: ["test/**/*.long.test.ts"],
          ...onACluster,
          provide: { containerd: "2.3.5" },
          fileParallelism: false,
        },
      },
    ],
  },
})
