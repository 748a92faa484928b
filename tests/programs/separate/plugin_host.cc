// plugin_host FILE PLUGIN...: opens each plug-in, then runs each; exit status 0 if all were right.
// Links nothing of Halftone and no protobuf.
#include <dlfcn.h>

#include <cstdio>
#include <vector>

int main(int argc, char** argv) {
  std::vector<int (*)(const char*)> plugins;
  for (int i = 2; i < argc; ++i) {
    void* const library = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
    void* const run = library == nullptr ? nullptr : dlsym(library, "run_plugin");
    if (run == nullptr) {
      std::fprintf(stderr, "%s\n", dlerror());
      return 100;
    }
    plugins.push_back(reinterpret_cast<int (*)(const char*)>(run));
  }
  for (auto* const run : plugins) {
    if (const int status = run(argv[1]); status != 0) return status;
  }
  std::printf("%zu plug-ins ran\n", plugins.size());
  return 0;
}
