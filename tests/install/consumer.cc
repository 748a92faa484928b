// Fails when an archive lost the operators: their registration must not depend on static
// initialisers, which a linker drops with the unreferenced object file around them.
#include <cstdio>

#include "halftone/graph/ir/op.h"

int main() {
  const auto& registry = halftone::ir::OpRegistry::Global();
  const auto* relu = registry.Find("relu");
  std::printf("%zu operators\n", registry.All().size());
  return relu == nullptr || !relu->gradient ? 1 : 0;
}
