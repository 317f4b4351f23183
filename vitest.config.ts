import { defineConfig } from "vitest/config"

/** Floors of tests: `unit` needs nothing but Node, `e2e` shares one real Kubernetes, `long` starts what it needs. */
export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: "unit",
          include: [
            "{src,tools,examples}/**/*.test.ts",
            "test/{support,repository,scenarios,simulation,model}/**/*.test.ts",
            "test/cri/harness/**/*.test.ts",
          ],
          setupFiles: ["src/lib/plain-names.ts", "test/support/judge-every-run.ts"],
          // Hundreds of runs in one test, on a machine that may be busy with a whole Kubernetes.
          testTimeout: 120_000,
        },
      },
      {
        test: {
          name: "e2e",
          include: ["test/{e2e,conformance}/**/*.test.ts", "test/cri/*.test.ts"],
          exclude: ["**/*.long.test.ts"],
          globalSetup: ["test/support/floor-setup.ts"],
          // A cluster on two cores: what is awaited is a condition, and this is only the end of patience.
          testTimeout: 300_000,
          hookTimeout: 300_000,
          // The tests share the machine's two cores with a whole Kubernetes; side by side they would only wait longer.
          fileParallelism: false,
        },
      },
      {
        test: {
          name: "long",
          include: ["test/**/*.long.test.ts"],
          testTimeout: 300_000,
          // A cluster of its own, with programs that may have to be built first.
          hookTimeout: 1_800_000,
          fileParallelism: false,
        },
      },
    ],
  },
})
