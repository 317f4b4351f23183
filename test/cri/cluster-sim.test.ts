import { simulatedFloor } from "./harness/simulated.ts"
import { criSuite } from "./harness/suite.ts"

criSuite({ recorded: "containerd-1.6", isSimulated: true, open: simulatedFloor })
