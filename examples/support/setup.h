// What programs that train take from the command line alike, and how they begin and end.
#pragma once

#include <optional>
#include <string>

#include "halftone/graph/nn/graph.h"

namespace halftone::example {

inline constexpr char kAmpHelp[] =
    "off, bf16, f16, f8 (bf16 around matrix products in 8 bits), or auto: the 16-bit type that is "
    "fast here, if any";

// Where a graph trains and in which precision.
struct Setup {
  Device device;
  bool lowers = false;
  std::optional<DType> low;  // where it lowers: to this type, or none said

  // Gradients need a scaled loss in f16 only: bf16 has the range of f32.
  bool scales_loss() const { return low == DType::kF16; }
  void Apply(nn::Graph& graph) const;
};

// What --amp, --device and --threads (0: all) say. Opens the device, sets the threads, and tells on
// standard error what is to be said of them. Errors: those of cli::WrongOption.
absl::StatusOr<Setup> SetUp(const std::string& amp, const std::string& device, int threads);

// A main function: reads the flags, refuses anything else, calls `run` and says on standard error
// what went wrong. Returns the exit status (cli/exit_status.h).
int RunProgram(const char* name, const char* usage, int argc, char** argv, absl::Status (*run)());

}  // namespace halftone::example
