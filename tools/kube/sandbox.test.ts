import { expect, test } from "vitest"
import { parseHierarchies } from "./sandbox.ts"

const name = "aim-cluster-x"

test("a machine with cgroups of version 1: a group in each tree, below our own", () => {
  const mounts = [
    "25 20 0:22 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755",
    "30 25 0:26 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct",
    "31 25 0:27 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory",
    "32 25 0:28 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,xattr,name=systemd",
    "33 25 0:29 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw",
  ].join("\n")
  const groups = "4:name=systemd:/\n3:memory:/jobs/a:b\n1:cpu,cpuacct:/\n0::/\n"
  expect(parseHierarchies({ mounts, groups, name })).toEqual([
    {
      type: "cgroup",
      options: "cpu,cpuacct",
      mountPoint: "/sys/fs/cgroup/cpu,cpuacct",
      group: "/sys/fs/cgroup/cpu,cpuacct/aim-cluster-x",
    },
    {
      type: "cgroup",
      options: "memory",
      mountPoint: "/sys/fs/cgroup/memory",
      group: "/sys/fs/cgroup/memory/jobs/a:b/aim-cluster-x",
    },
    {
      type: "cgroup",
      options: "none,name=systemd",
      mountPoint: "/sys/fs/cgroup/systemd",
      group: "/sys/fs/cgroup/systemd/aim-cluster-x",
    },
    {
      type: "cgroup2",
      options: "",
      mountPoint: "/sys/fs/cgroup/unified",
      group: "/sys/fs/cgroup/unified/aim-cluster-x",
    },
  ])
})

test("a machine with version 2 only has one tree", () => {
  const mounts = "30 25 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate"
  expect(parseHierarchies({ mounts, groups: "0::/user.slice\n", name })).toEqual([
    { type: "cgroup2", options: "", mountPoint: "/sys/fs/cgroup", group: "/sys/fs/cgroup/user.slice/aim-cluster-x" },
  ])
})
