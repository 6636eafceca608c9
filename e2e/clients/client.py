"""Uses a cache as a Python program would: many keys over all its servers, written and read back.

usage: client.py text|binary COUNT SERVER... [--user U --password P] [--ca FILE --name HOST [--cert FILE --key FILE]]
"""

import argparse
import ssl
import sys


def tls(options):
    if not options.ca:
        return None
    context = ssl.create_default_context(cafile=options.ca)
    # Servers are called by address here; their certificates have one name for all of them.
    context.check_hostname = False
    if options.cert:
        context.load_cert_chain(options.cert, options.key)
    return context


def text(options):
    from pymemcache.client.hash import HashClient

    servers = [(host, int(port)) for host, port in (server.rsplit(":", 1) for server in options.servers)]
    client = HashClient(servers, connect_timeout=20, timeout=20, default_noreply=False, tls_context=tls(options))
    return client.set, lambda key: (client.get(key) or b"").decode()


def binary(options):
    import bmemcached

    client = bmemcached.Client(
        options.servers, options.user, options.password, socket_timeout=20, tls_context=tls(options)
    )
    return client.set, client.get


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("protocol", choices=["text", "binary"])
    parser.add_argument("count", type=int)
    parser.add_argument("servers", nargs="+")
    for option in ["user", "password", "ca", "cert", "key"]:
        parser.add_argument(f"--{option}")
    options = parser.parse_args()
    put, get = text(options) if options.protocol == "text" else binary(options)
    for number in range(options.count):
        if not put(f"py-{number}", f"py-{number}"):
            sys.exit(f"py-{number} is not stored")
    for number in range(options.count):
        if get(f"py-{number}") != f"py-{number}":
            sys.exit(f"py-{number} is not there")
    print(f"{options.count} keys")


main()
