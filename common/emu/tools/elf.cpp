// SPDX-License-Identifier: MIT
//
// The dynamic section and the symbols of an ELF file.

#include "common/emu/tools/elf.h"

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>

namespace gg::emu {
namespace {

class File {
 public:
  explicit File(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(file), {});
  }

  template <class T>
  std::optional<T> read(uint64_t at) const {
    if (at > bytes_.size() || sizeof(T) > bytes_.size() - at) return std::nullopt;
    T value;
    std::memcpy(&value, bytes_.data() + at, sizeof value);
    return value;
  }
  // `count` entries of a table, as many as the file has.
  template <class T>
  std::vector<T> table(uint64_t at, uint64_t count) const {
    std::vector<T> all;
    for (uint64_t i = 0; i < count; ++i) {
      const auto entry = read<T>(at + i * sizeof(T));
      if (!entry) break;
      all.push_back(*entry);
    }
    return all;
  }
  std::string text(uint64_t at) const {
    if (at >= bytes_.size()) return "";
    return {bytes_.begin() + long(at), std::find(bytes_.begin() + long(at), bytes_.end(), '\0')};
  }

 private:
  std::vector<char> bytes_;
};

// The file offset of a virtual address; 0 if no segment holds it.
uint64_t offset_of(const std::vector<Elf64_Phdr>& segments, uint64_t address) {
  for (const Elf64_Phdr& s : segments) {
    if (s.p_type == PT_LOAD && address >= s.p_vaddr && address - s.p_vaddr < s.p_filesz)
      return address - s.p_vaddr + s.p_offset;
  }
  return 0;
}

void read_dynamic(const File& file, const Elf64_Ehdr& header, Elf* elf) {
  const auto segments = file.table<Elf64_Phdr>(header.e_phoff, header.e_phnum);
  std::vector<uint64_t> names;
  uint64_t strings = 0;
  bool rpath = false, runpath = false;
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_DYNAMIC) continue;
    for (const auto& entry : file.table<Elf64_Dyn>(segment.p_offset, segment.p_filesz / sizeof(Elf64_Dyn))) {
      if (entry.d_tag == DT_NULL) break;
      if (entry.d_tag == DT_NEEDED) names.push_back(entry.d_un.d_val);
      if (entry.d_tag == DT_STRTAB) strings = offset_of(segments, entry.d_un.d_ptr);
      rpath = rpath || entry.d_tag == DT_RPATH;
      runpath = runpath || entry.d_tag == DT_RUNPATH;
      if (entry.d_tag == DT_BIND_NOW || (entry.d_tag == DT_FLAGS && entry.d_un.d_val & DF_BIND_NOW) ||
          (entry.d_tag == DT_FLAGS_1 && entry.d_un.d_val & DF_1_NOW))
        elf->binds_now = true;
    }
  }
  elf->rpath = rpath && !runpath;
  for (const uint64_t name : names) {
    const std::string library = file.text(strings + name);
    if (!library.empty()) elf->libraries.push_back(library);
  }
}

void read_symbols(const File& file, const Elf64_Ehdr& header, Elf* elf) {
  const auto sections = file.table<Elf64_Shdr>(header.e_shoff, header.e_shnum);
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type != SHT_DYNSYM || section.sh_link >= sections.size()) continue;
    const uint64_t strings = sections[section.sh_link].sh_offset;
    for (const auto& s : file.table<Elf64_Sym>(section.sh_offset, section.sh_size / sizeof(Elf64_Sym))) {
      const std::string name = file.text(strings + s.st_name);
      const bool weak = ELF64_ST_BIND(s.st_info) == STB_WEAK;
      if (name.empty() || (weak && s.st_shndx == SHN_UNDEF)) continue;  // a program may do without
      (s.st_shndx == SHN_UNDEF ? elf->undefined : elf->defined).push_back(name);
    }
  }
}

}  // namespace

std::optional<Elf> read_elf(const std::string& path) {
  const File file(path);
  const auto header = file.read<Elf64_Ehdr>(0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
      header->e_ident[EI_CLASS] != ELFCLASS64)
    return std::nullopt;
  Elf elf;
  read_dynamic(file, *header, &elf);
  read_symbols(file, *header, &elf);
  return elf;
}

}  // namespace gg::emu
