/* names.h - the hooked names, as a list of strings. */
#pragma once

#include <stddef.h>

#define ALWAYS_lookup(name)  #name,
#define ALWAYS_context(name) #name,
#define ALWAYS_memory(name)  #name,
#define ALWAYS_mapping(name) #name,
#define ALWAYS_pool(name)    #name,
#define ALWAYS_ipc(name)     #name,
#define ALWAYS_merge(name)
#define ALWAYS_event(name)
#define ALWAYS_graph(name)
#define ALWAYS_module(name)
#define ALWAYS_wait(name)
#define ALWAYS_told(name)
static const char *const driver_names[] = {
#define DRIVER(kind, name, parameters, arguments) ALWAYS_##kind(name)
#include "cuda/hooks.def"
};
enum { DRIVER_NAMES = sizeof driver_names / sizeof *driver_names };

/* Those that are hooked only where a rule, or an audit, asks for it. */
#define RULED_lookup(name)
#define RULED_context(name)
#define RULED_memory(name)
#define RULED_mapping(name)
#define RULED_pool(name)
#define RULED_ipc(name)
#define RULED_merge(name)  #name,
#define RULED_event(name)  #name,
#define RULED_graph(name)  #name,
#define RULED_module(name) #name,
#define RULED_wait(name)   #name,
#define RULED_told(name)   #name,
__attribute__((unused)) static const char *const ruled_names[] = {
#define DRIVER(kind, name, parameters, arguments)  RULED_##kind(name)
#define WRITE(name, parameters, arguments, what)   #name,
#define GATED(name, parameters, arguments, stream) #name,
#define READ(name, parameters, arguments, stream)  #name,
#include "cuda/hooks.def"
};
enum { RULED_NAMES = sizeof ruled_names / sizeof *ruled_names };
