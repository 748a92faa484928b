// How long OpenMP's threads wait actively.
//
// libgomp's threads spin for milliseconds before they sleep, at the end of a parallel region and
// until the next. On an idle machine that makes a region cost a microsecond in place of fifty;
// where other programs want the CPUs too, a thread spins in the time that the one it waits for
// needs, and a step takes as long as the scheduler's slices. Its spinning can be set only before it
// is loaded. But where there are more OpenMP threads than CPUs it spins for some microseconds only
// (libgomp manual, GOMP_SPINCOUNT), so while the machine is busy this keeps a team that sleeps.
#pragma once

namespace halftone {

// Decides, twenty times a second at most, whether others want the CPUs, by how long the calling
// thread had to wait for one. Call it where a run begins; costs the reading of a clock. Does nothing
// where OMP_WAIT_POLICY or GOMP_SPINCOUNT is set, or the kernel keeps no such statistics.
void AdaptWaiting();

// Whether threads give way after microseconds by its decision. For tests.
bool WaitsBriefly();

}  // namespace halftone
