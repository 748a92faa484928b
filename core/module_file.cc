#include "halftone/core/module_file.h"

#include <dlfcn.h>
#include <link.h>

#include <filesystem>
#include <system_error>
#include <vector>

namespace halftone {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> Folders() {
  static const char here = 0;
  Dl_info info;
  link_map* map = nullptr;
  std::error_code ignored;
  if (dladdr1(&here, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) != 0 &&
      map != nullptr && map->l_name != nullptr && map->l_name[0] != '\0') {
    // A shared library: build/python/halftone/MODULE,
    // PREFIX/lib/python3/dist-packages/halftone/MODULE.
    const fs::path own = fs::weakly_canonical(map->l_name, ignored).parent_path();
    const fs::path above = own.parent_path(), over = above.parent_path();
    return {own, above, over, over.parent_path()};
  }
  // A program: build/tools/PROGRAM, PREFIX/bin/PROGRAM.
  const fs::path own = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  if (own.empty()) return {};
  return {own, own.parent_path(), own.parent_path() / "lib"};
}

}  // namespace

std::string FindModule(const std::string& library) {
  for (const fs::path& folder : Folders()) {
    std::error_code ignored;
    if (fs::is_regular_file(folder / library, ignored)) return (folder / library).string();
  }
  return library;
}

}  // namespace halftone
