import { expect, test } from "vitest"
import { recordedBy } from "./kubelet-keys.ts"

const labels = {
  "io.kubernetes.pod.name": "web-0",
  "io.kubernetes.pod.namespace": "shop",
  "io.kubernetes.pod.uid": "u-1",
}

test("what the kubelet recorded on a container is read", () => {
  const annotations = {
    "io.kubernetes.container.hash": "1a2b",
    "io.kubernetes.container.restartCount": "2",
    "io.kubernetes.container.preStopHandler": '{"httpGet":{"path":"/bye","port":"admin","scheme":"HTTP"}}',
    "io.kubernetes.container.ports": '[{"name":"admin","containerPort":9000,"protocol":"TCP"}]',
    "io.kubernetes.pod.terminationGracePeriod": "45",
  }
  expect(recordedBy({ labels, annotations })).toEqual({
    podName: "web-0",
    podNamespace: "shop",
    podUid: "u-1",
    restartCount: 2,
    preStop: { httpGet: { path: "/bye", port: "admin", scheme: "HTTP" } },
    ports: [{ name: "admin", containerPort: 9000, protocol: "TCP" }],
    terminationGracePeriodSeconds: 45,
  })
})

test("a pod without a handler, ports and grace period", () => {
  const { preStop, ports, terminationGracePeriodSeconds } = recordedBy({ labels, annotations: {} }) ?? {}
  expect({ preStop, ports, terminationGracePeriodSeconds }).toEqual({ ports: [] })
})

test("a container that the kubelet did not start has no record", () => {
  expect(recordedBy({ labels: {}, annotations: {} })).toBeUndefined()
})
