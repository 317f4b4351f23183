export const mottoMetrics = {
  motto_differing: { type: "gauge", labels: ["motto"], unit: "ConfigMaps", help: "ConfigMaps without the text." },
} as const
