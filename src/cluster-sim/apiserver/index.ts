export type { Admission, Validation } from "./backend.ts"
export { createStorage, type ServerStorage, type StorageOptions } from "./create-storage.ts"
export type { Printer, ServedKind, Strategy, StrategyContext, TableColumn } from "./kind.ts"
export type { DeleteOptions, KindStorage, Name, PatchBody, Selection, StorageChange, WriteOptions } from "./storage.ts"
