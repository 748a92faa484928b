// How the programs here time a step.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

namespace halftone::benchmarks {

// Median seconds of `steps` calls; 1 or more.
template <typename Fn>
double MedianSeconds(int steps, const Fn& fn) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> seconds(static_cast<size_t>(steps));
  for (double& s : seconds) {
    const auto start = Clock::now();
    fn();
    s = std::chrono::duration<double>(Clock::now() - start).count();
  }
  std::nth_element(seconds.begin(), seconds.begin() + steps / 2, seconds.end());
  return seconds[static_cast<size_t>(steps) / 2];
}

}  // namespace halftone::benchmarks
