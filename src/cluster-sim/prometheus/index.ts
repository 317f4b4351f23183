export { createPrometheus, type PrometheusOptions, type SimulatedPrometheus } from "./prometheus.ts"
