#!/bin/sh
# Speaks as a supervisor does, and confines nothing. The order says what becomes of it: the program it names is none.
say() { echo "$1" >&0; }
read -r order
case $order in
    *no-sandbox*) say '{"report":"failed","message":"this kernel has no Landlock"}' ;;
    *'"probe":{'*)
        case $order in *layered*) holds=true ;; *) holds=false ;; esac
        say "{\"report\":\"ready\",\"layers\":[{\"layer\":\"mount-namespace\",\"holds\":$holds,\"detail\":\"\"}]}"
        say "{\"report\":\"probe\",\"probe\":\"denied\",\"fsDenied\":true,\"note\":\"tested by $$\"}"
        ;;
    *'"exit 0"'*) say '{"report":"started"}'; say '{"report":"exited","code":0,"signal":null}' ;;
    *'"weaker"'*'"least":["mount-namespace"]'*)
        say '{"report":"ready","layers":[{"layer":"mount-namespace","holds":false,"detail":"no more"}]}'
        say '{"report":"failed","message":"it is weaker"}'
        ;;
    *'"exit 3"'*) say '{"report":"started"}'; say '{"report":"exited","code":3,"signal":null}' ;;
    *'"killed"'*) say '{"report":"started"}'; say '{"report":"exited","code":null,"signal":9}' ;;
    *'"unable"'*) say '{"report":"failed","message":"no such program"}' ;;
    *'"untidy"'*)
        say '{"report":"exited","code":0,"signal":null}'
        say '{"report":"failed","message":"something is left"}'
        ;;
    *'"vanish"'*) ;;
    *'"nonsense"'*) say 'nonsense'; say '{"report":"exited","code":0,"signal":null}' ;;
    *'"wait"'*)
        say '{"report":"started"}'
        while read -r word; do
            [ "$word" = cancel ] && say '{"report":"exited","code":null,"signal":15}' && exit
        done
        ;;
    *'"deaf"'*) exec /bin/sleep 1000 ;;
esac
