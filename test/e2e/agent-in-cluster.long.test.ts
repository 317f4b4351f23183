// The same tests on a node with containerd 2.3.5: the project `long` has one.
import "./agent-in-cluster.test.ts"
