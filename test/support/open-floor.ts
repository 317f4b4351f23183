import { openFloor } from "./floor.ts"

// Vitest's setup file for tests on a real Kubernetes: the cluster is up before the file is loaded.
await openFloor()
