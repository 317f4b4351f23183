export { type Admission, createRegistry, type RegistryOptions, type ServerRegistry } from "./create-registry.ts"
export type { Printer, ServedKind, Strategy, StrategyContext, TableColumn } from "./kind.ts"
export type { DeleteOptions, Name, PatchBody, Registry, RegistryChange, Selection, WriteOptions } from "./registry.ts"
