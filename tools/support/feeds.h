// What --feed gives the inputs of a graph: .npy files and generated values.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "halftone/graph/ir/graph.h"

namespace halftone::tools {

class Feeds {
 public:
  // Each item is "input=source", where source is
  //   FILE.npy      a file
  //   zeros, ones
  //   arange        0, 1, 2, ... in row-major order
  //   arange:N      the same modulo N, for labels and ids
  //   normal:SEED   normally distributed, mean 0, deviation 1; of the framework's generator, so
  //                 equal everywhere
  // Errors: OptionError (no such form, an input given twice).
  static absl::StatusOr<Feeds> Parse(const std::vector<std::string>& items);

  // Gives each input of `graph` that has no feed the file "<folder>/<input>.npy", if it exists.
  void AddFrom(const std::string& folder, const ir::Graph& graph);

  // Reads the files. Errors: those of io::ReadNpy.
  absl::Status ReadFiles();

  // What the files hold, by input. Requires: ReadFiles.
  std::map<std::string, Tensor> FileValues() const;

  // One tensor for each input of `graph`, in order. An input is known by its name for callers or by
  // that of its node. Errors: OptionError (a dtype or shape that differs, an input without feed, a
  // feed without input, normal for integers), ResourceExhausted. Requires: ReadFiles.
  absl::StatusOr<std::vector<Tensor>> MakeTensors(const ir::Graph& graph) const;

 private:
  struct Source {
    std::string text;  // as given
    Tensor value;      // of a file
  };
  // The feed of an input node, by either name; the end if it has none.
  std::map<std::string, Source>::const_iterator Find(const ir::Node& input) const;

  std::map<std::string, Source> sources_;
};

}  // namespace halftone::tools
