export { type Attributes, type Authorizer, isSuperuser, superuser, type User, type Verdict } from "./user.ts"
