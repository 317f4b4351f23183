import { floor } from "../support/floor.ts"
import { realFloor } from "./harness/real.ts"
import { criSuite } from "./harness/suite.ts"

criSuite({ recorded: "containerd-2.3.5", open: () => realFloor(floor()) })
